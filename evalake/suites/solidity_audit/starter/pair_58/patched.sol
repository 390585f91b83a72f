// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title RecoveryWallet
/// @notice Wallet whose owner can be replaced by two of its guardians after three days.
contract RecoveryWallet {
    uint256 public constant QUORUM = 2;
    uint256 public constant DELAY = 3 days;

    address public owner;
    address[] public guardians;
    mapping(address => bool) public isGuardian;
    mapping(address => uint256) public positionOf;
    uint256 public round;
    mapping(uint256 => mapping(address => mapping(address => bool))) public voted;
    mapping(uint256 => mapping(address => uint256)) public votesFor;
    mapping(uint256 => mapping(address => uint256)) public readyAt;

    event GuardianAdded(address indexed guardian);
    event GuardianRemoved(address indexed guardian);
    event RecoveryVoted(address indexed guardian, address indexed newOwner);
    event OwnerChanged(address indexed newOwner);

    modifier onlyOwner() {
        require(msg.sender == owner, "not owner");
        _;
    }

    constructor() payable {
        owner = msg.sender;
    }

    function addGuardian(address guardian) external onlyOwner {
        require(guardian != address(0) && !isGuardian[guardian], "bad guardian");
        positionOf[guardian] = guardians.length;
        guardians.push(guardian);
        isGuardian[guardian] = true;
        emit GuardianAdded(guardian);
    }

    /// @notice Removes a guardian and cancels running recoveries.
    function removeGuardian(address guardian) external onlyOwner {
        require(isGuardian[guardian], "not guardian");
        address last = guardians[guardians.length - 1];
        guardians[positionOf[guardian]] = last;
        guardians.pop();
        positionOf[last] = positionOf[guardian];
        delete positionOf[guardian];
        delete isGuardian[guardian];
        round += 1;
        emit GuardianRemoved(guardian);
    }

    /// @notice Votes for a new owner; after the quorum the waiting time runs.
    function voteRecovery(address newOwner) external {
        require(isGuardian[msg.sender], "not guardian");
        require(newOwner != address(0) && !voted[round][newOwner][msg.sender], "already voted");
        voted[round][newOwner][msg.sender] = true;
        votesFor[round][newOwner] += 1;
        if (votesFor[round][newOwner] == QUORUM) {
            readyAt[round][newOwner] = block.timestamp + DELAY;
        }
        emit RecoveryVoted(msg.sender, newOwner);
    }

    /// @notice Stops all running recoveries.
    function cancelRecoveries() external onlyOwner {
        round += 1;
    }

    function completeRecovery(address newOwner) external {
        uint256 ready = readyAt[round][newOwner];
        require(ready != 0 && block.timestamp >= ready, "not ready");
        round += 1;
        owner = newOwner;
        emit OwnerChanged(newOwner);
    }

    function pay(address payable to, uint256 amount) external onlyOwner {
        (bool sent, ) = to.call{value: amount}("");
        require(sent, "transfer failed");
    }
}
