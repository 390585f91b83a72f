// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title ClubDebit
/// @notice Members keep ether here and sign mandates off-chain with which the club collects a fee.
contract ClubDebit {
    address public immutable club;
    uint256 public clubBalance;
    mapping(address => uint256) public balanceOf;
    mapping(address => uint256) public mandatesUsed;

    event Deposited(address indexed member, uint256 amount);
    event Collected(address indexed member, uint256 amount);
    event Withdrawn(address indexed member, uint256 amount);

    constructor() {
        club = msg.sender;
    }

    function deposit() external payable {
        balanceOf[msg.sender] += msg.value;
        emit Deposited(msg.sender, msg.value);
    }

    /// @notice What a member signs for one fee.
    function mandateDigest(address member, uint256 amount) public view returns (bytes32) {
        return keccak256(abi.encode(block.chainid, address(this), member, amount, mandatesUsed[member]));
    }

    /// @notice Moves a fee from a member to the club with the member's mandate.
    function collect(address member, uint256 amount, uint8 v, bytes32 r, bytes32 s) external {
        address signer = ecrecover(mandateDigest(member, amount), v, r, s);
        require(signer != address(0) && signer == member, "no mandate");
        mandatesUsed[member] += 1;
        balanceOf[member] -= amount;
        clubBalance += amount;
        emit Collected(member, amount);
    }

    function withdraw(uint256 amount) external {
        balanceOf[msg.sender] -= amount;
        emit Withdrawn(msg.sender, amount);
        (bool sent, ) = msg.sender.call{value: amount}("");
        require(sent, "transfer failed");
    }

    function payClub() external {
        uint256 amount = clubBalance;
        clubBalance = 0;
        (bool sent, ) = club.call{value: amount}("");
        require(sent, "transfer failed");
    }
}
