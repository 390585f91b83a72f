// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

interface IRandomnessCoordinator {
    /// @notice Asks for one verifiable random word, which it delivers in a later transaction to receiveRandomWord.
    function requestRandomWord() external returns (uint256 requestId);
}

/// @title RollingLottery
/// @notice Lottery in rounds; each round ends with a draw from a verifiable random word.
contract RollingLottery {
    uint256 public constant ENTRY_FEE = 0.1 ether;
    uint256 public constant MIN_ENTRIES = 10;
    uint256 public constant HOUSE_BPS = 200;

    IRandomnessCoordinator public immutable coordinator;
    address public immutable house;

    uint256 public round = 1;
    uint256 public roundOpenedAt;
    uint256 public roundLength;
    uint256 public pendingRequest;
    bool public drawing;

    mapping(uint256 => address[]) private entriesOf;
    mapping(address => uint256) public payouts;

    event Entered(uint256 indexed round, address indexed player, uint256 entryIndex);
    event DrawRequested(uint256 indexed round, uint256 requestId);
    event RoundWon(uint256 indexed round, address indexed winner, uint256 amount);
    event PaidOut(address indexed account, uint256 amount);

    error WrongFee(uint256 sent);
    error DrawInProgress();
    error RoundStillOpen();
    error TooFewEntries(uint256 count);
    error NotCoordinator(address caller);
    error UnknownRequest(uint256 requestId);

    constructor(IRandomnessCoordinator coordinator_, uint256 roundLength_) {
        coordinator = coordinator_;
        house = msg.sender;
        roundLength = roundLength_;
        roundOpenedAt = block.timestamp;
    }

    /// @notice Enters the current round; an account may enter several times.
    function enter() external payable {
        if (drawing) revert DrawInProgress();
        if (msg.value != ENTRY_FEE) revert WrongFee(msg.value);
        entriesOf[round].push(msg.sender);
        emit Entered(round, msg.sender, entryCount() - 1);
    }

    /// @notice Requests the draw of the current round once its time is over.
    function requestDraw() external {
        if (drawing) revert DrawInProgress();
        if (block.timestamp < roundOpenedAt + roundLength) revert RoundStillOpen();
        if (entryCount() < MIN_ENTRIES) revert TooFewEntries(entryCount());
        drawing = true;
        pendingRequest = coordinator.requestRandomWord();
        emit DrawRequested(round, pendingRequest);
    }

    /// @notice Called by the coordinator; draws the winner and opens the next round.
    function receiveRandomWord(uint256 requestId, uint256 word) external {
        if (msg.sender != address(coordinator)) revert NotCoordinator(msg.sender);
        if (!drawing || requestId != pendingRequest) revert UnknownRequest(requestId);

        uint256 count = entryCount();
        uint256 pot = count * ENTRY_FEE;
        uint256 houseShare = (pot * HOUSE_BPS) / 10_000;
        address winner = entriesOf[round][word % count];
        payouts[house] += houseShare;
        payouts[winner] += pot - houseShare;
        emit RoundWon(round, winner, pot - houseShare);

        drawing = false;
        round += 1;
        roundOpenedAt = block.timestamp;
    }

    /// @notice Pays the caller's winnings out.
    function collect() external {
        uint256 amount = payouts[msg.sender];
        require(amount > 0, "nothing to collect");
        payouts[msg.sender] = 0;
        emit PaidOut(msg.sender, amount);
        (bool sent, ) = msg.sender.call{value: amount}("");
        require(sent, "transfer failed");
    }

    /// @notice Sets the length of rounds; takes effect while no draw is in progress.
    function setRoundLength(uint256 seconds_) external {
        require(msg.sender == house, "not house");
        if (drawing) revert DrawInProgress();
        roundLength = seconds_;
    }

    /// @notice Entries of the current round.
    function entryCount() public view returns (uint256) {
        return entriesOf[round].length;
    }
}
