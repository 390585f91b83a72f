// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

interface IRandomBeacon {
    /// @notice Asks for one verifiable random word, which it delivers in a later transaction to fulfil.
    function request() external returns (uint256 requestId);
}

/// @title WishingWell
/// @notice Every stake goes into a pot; one play in fifteen on average takes all of it.
contract WishingWell {
    uint256 public constant STAKE = 0.05 ether;
    uint256 public constant ODDS = 15;

    address public immutable keeper;
    uint256 public pot;
    uint256 public plays;
    bool public closed;
    uint256 public closedAt;
    IRandomBeacon public immutable beacon;
    mapping(uint256 => address) public playerOf;

    mapping(address => uint256) public winnings;

    event Played(address indexed player, uint256 pot);
    event Won(address indexed player, uint256 amount);
    event Collected(address indexed player, uint256 amount);
    event Closed(uint256 pot);
    event Donated(address indexed charity, uint256 amount);

    constructor(IRandomBeacon beacon_) payable {
        beacon = beacon_;
        keeper = msg.sender;
        pot = msg.value;
    }

    /// @notice Plays once for the stake.
    function play() external payable {
        require(!closed, "well closed");
        require(msg.value == STAKE, "wrong stake");
        pot += msg.value;
        plays += 1;
        emit Played(msg.sender, pot);
        playerOf[beacon.request()] = msg.sender;
    }

    /// @notice Called by the beacon with the random word of one play.
    function fulfil(uint256 requestId, uint256 word) external {
        require(msg.sender == address(beacon), "not beacon");
        address player = playerOf[requestId];
        require(player != address(0), "unknown request");
        delete playerOf[requestId];
        if (word % ODDS == 0) {
            uint256 amount = pot;
            pot = 0;
            winnings[player] += amount;
            emit Won(player, amount);
        }
    }

    /// @notice Pays the caller's winnings.
    function collect() external {
        uint256 amount = winnings[msg.sender];
        require(amount > 0, "no winnings");
        winnings[msg.sender] = 0;
        emit Collected(msg.sender, amount);
        (bool sent, ) = msg.sender.call{value: amount}("");
        require(sent, "transfer failed");
    }

    /// @notice Adds to the pot without playing.
    function addToPot() external payable {
        require(!closed, "well closed");
        pot += msg.value;
    }

    /// @notice Ends the game; no further plays are accepted.
    function close() external {
        require(msg.sender == keeper, "not keeper");
        require(!closed, "well closed");
        closed = true;
        closedAt = block.timestamp;
        emit Closed(pot);
    }

    /// @notice Gives what is left of the pot to a charity, a week after the end of the game.
    function donateRemainder(address charity) external {
        require(msg.sender == keeper, "not keeper");
        require(closed && block.timestamp >= closedAt + 7 days, "too early");
        uint256 remainder = pot;
        pot = 0;
        winnings[charity] += remainder;
        emit Donated(charity, remainder);
    }
}
